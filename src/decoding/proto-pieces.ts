import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { joined } from './joined.ts';
import type { FieldShape } from './message-shape.ts';
import type { RestPiece } from './proto-scan.ts';

/** The bytes of a message that is made of `pieces` of `bytes`. O(bytes). */
export function wholeMessage(bytes: Uint8Array, pieces: readonly RestPiece[]): Uint8Array {
  return joined(
    pieces.map((piece) =>
      piece.field === null
        ? bytes.subarray(piece.from, piece.to)
        : asField(piece.field, wholeMessage(bytes, piece.pieces)),
    ),
  );
}

/** Fields of a message that hangs on another by `parents`, as fields of that one. */
export function wrapped(parents: readonly FieldShape[], fields: Uint8Array): Uint8Array {
  return parents.reduceRight((inner, parent) => asField(parent, inner), fields);
}

function asField({ number }: FieldShape, message: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(message).finish();
}

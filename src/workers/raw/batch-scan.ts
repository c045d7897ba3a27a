import { JsonScanner } from './json-scanner.ts';
import { ProtoScanner } from './proto-scanner.ts';
import { createRawFields } from './raw-fields.ts';

/** Scanners with fields of their own, for a batch that is read in slices: what it found stays its own until it ends. */
export class BatchScan {
  readonly fields = createRawFields();
  readonly json: JsonScanner;
  readonly proto: ProtoScanner;

  constructor(itemsMax: number) {
    this.json = new JsonScanner(this.fields, itemsMax);
    this.proto = new ProtoScanner(this.fields, itemsMax);
  }
}

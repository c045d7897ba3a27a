import { uint32At } from './frame-cutter.ts';
import {
  ENABLE_PUSH,
  FLOW_CONTROL_ERROR,
  INITIAL_WINDOW_SIZE,
  MAX_CONCURRENT_STREAMS,
  MAX_FRAME_SIZE,
  MAX_HEADER_LIST_SIZE,
  NO_ERROR,
  PROTOCOL_ERROR,
  WINDOW_MAX,
} from './protocol.ts';

export const SETTING_BYTES = 6;
const FRAME_SIZE_MIN = 16_384;
const FRAME_SIZE_MAX = 2 ** 24 - 1;

/** Result of reading a SETTINGS frame of the peer: its error code, and the window of streams, -1 where it states none. */
export type PeerSettings = { readonly error: number; readonly initialWindow: number };

/**
 * Reads the settings of a peer (RFC 9113 section 6.5.2). Only the window of streams is used. We push nothing, index nothing,
 * open no streams, and send frames of the size that every peer accepts.
 */
export function readSettings(bytes: Uint8Array, from: number, to: number): PeerSettings {
  let initialWindow = -1;
  for (let at = from; at < to; at += SETTING_BYTES) {
    const name = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
    const value = uint32At(bytes, at + 2);
    if (name === ENABLE_PUSH && value > 1) return { error: PROTOCOL_ERROR, initialWindow };
    if (name === INITIAL_WINDOW_SIZE) {
      if (value > WINDOW_MAX) return { error: FLOW_CONTROL_ERROR, initialWindow };
      initialWindow = value;
    }
    if (name === MAX_FRAME_SIZE && (value < FRAME_SIZE_MIN || value > FRAME_SIZE_MAX)) {
      return { error: PROTOCOL_ERROR, initialWindow };
    }
  }
  return { error: NO_ERROR, initialWindow };
}

/** The payload of our settings. */
export function ownSettings(
  streamsMax: number,
  headerBytesMax: number,
  initialWindow: number,
): Uint8Array {
  const pairs = [
    [ENABLE_PUSH, 0],
    [MAX_CONCURRENT_STREAMS, streamsMax],
    [INITIAL_WINDOW_SIZE, initialWindow],
    [MAX_HEADER_LIST_SIZE, headerBytesMax],
  ] as const;
  const payload = Buffer.alloc(pairs.length * SETTING_BYTES);
  for (const [i, [name, value]] of pairs.entries()) {
    payload.writeUInt16BE(name, i * SETTING_BYTES);
    payload.writeUInt32BE(value, i * SETTING_BYTES + 2);
  }
  return payload;
}

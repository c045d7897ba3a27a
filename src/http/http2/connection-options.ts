import type { UnreadBytes } from './own-stream.ts';
import type { Http2Headers, Http2RequestStream } from './request-stream.ts';

/** Bounds of a connection and its callbacks. */
export type ConnectionOptions = {
  readonly streamsMax: number;
  readonly headerBytesMax: number;
  readonly idleMs: number;
  readonly handshakeMs: number;
  /** An answer of which nothing leaves for this long, and at most half of it longer, is given up. */
  readonly answerStallMs: number;
  readonly onStream: (stream: Http2RequestStream, headers: Http2Headers) => void;
  /** Where bytes of bodies wait for their readers, as those of `owner`; '' where it is not known who calls. */
  readonly newUnread: (owner: string) => UnreadBytes;
  /** A stream was opened (1), or is over and its answer with the kernel (-1). */
  readonly onCount: (change: 1 | -1) => void;
  /** The socket has closed. */
  readonly onClose: () => void;
  readonly onIncident: (event: string, detail: string) => void;
};

/** Streams that one connection may open and drop in a burst, and a second after that (rapid reset). */
export const RESET_BURST = 1_000;
export const RESET_PER_SECOND = 33;
export const RESET_RATE = { burst: RESET_BURST, perSecond: RESET_PER_SECOND };
/** Bytes of request body that a stream may send ahead of being read; a connection likewise, of all that was not looked at. */
export const WINDOW_BYTES = 1_048_576;
/** Released to the peer when so much of a window is used. */
export const WINDOW_STEP_BYTES = WINDOW_BYTES / 2;
/** Resets by whomever, and bytes of header blocks, after which other connections have their turn. */
export const RESETS_A_TURN = 16;
export const BLOCK_BYTES_A_TURN = 8_192;
export const SETTINGS_PER_FRAME_MAX = 32;
/** Streams refused one after another, since there were too many. */
export const REJECTED_STREAMS_MAX = 100;
/** Fields of one request. */
export const FIELDS_MAX = 128;
/** Of one request, beside the HEADERS frame. */
export const CONTINUATIONS_MAX = 8;
/** Bytes of a header block as it comes; what it says is bounded by the limit of header bytes. */
export const BLOCK_BYTES_MAX = 65_536;
/** Of one that has not come whole: what each connection may hold, and what all of them may hold beyond that. */
export const BLOCK_BYTES_SPARE = 8_192;
export const BLOCKS_BYTES_MAX = 4 * 1_048_576;
/** A frame that has not come whole and takes more is what the connection has its memory for. */
export const HELD_SPARE = 8_192;
/** Streams that we reset remembered; what the peer has sent before it knew is not its fault. */
export const KNOWN_RESETS_MAX = 512;
/** Answers to SETTINGS and PING, and resets, that the peer has not taken. */
export const CONTROL_FRAMES_MAX = 500;
/** Of answers that wait for windows; beyond them no stream is opened. */
export const QUEUED_BYTES_MAX = 64 * 1_048_576;
/** Of bodies that no reader has taken; beyond them the window of the connection is not opened. */
export const UNREAD_BYTES_MAX = 64 * 1_048_576;
/** On the way to the kernel; beyond them no data is sent. */
export const OUTPUT_BYTES_MAX = 262_144;
/** Of them that the kernel has not taken; beyond them nothing is read, so that no answers are added. */
export const BACKLOG_BYTES_MAX = 4_096;
/** Frames of a body beside one for each 16 bytes: it does not come in crumbs. */
export const BODY_FRAMES_SPARE = 256;
export const BODY_BYTES_A_FRAME = 16;
/** How long a peer may send nothing and still be waited for, which reads the last frames; all in all where it did something wrong. */
export const FAREWELL_MS = 1_000;

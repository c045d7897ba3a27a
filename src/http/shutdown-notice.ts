import { writeSync } from 'node:fs';
import type { ServerHttp2Session } from 'node:http2';

/** What libuv knows of a socket; node:net has it, its typings do not. */
type SocketHandle = { readonly fd: number; readonly writeQueueSize: number };

const FRAME_HEAD_BYTES = 9;
const GOAWAY_BYTES = 8;
const GOAWAY_TYPE = 7;
const LAST_STREAM_ID_MAX = 2 ** 31 - 1;

/** GOAWAY on stream 0 with the highest stream id and NO_ERROR (RFC 9113 section 6.8). */
const NOTICE = Buffer.alloc(FRAME_HEAD_BYTES + GOAWAY_BYTES);
NOTICE.writeUIntBE(GOAWAY_BYTES, 0, 3);
NOTICE.writeUInt8(GOAWAY_TYPE, 3);
NOTICE.writeUInt32BE(LAST_STREAM_ID_MAX, FRAME_HEAD_BYTES);

/**
 * Notifies the client of a connection without TLS to open no more streams there, and refuses none: RFC 9113 section 6.8
 * wants this a round trip before the GOAWAY that refuses. `session.goaway` cannot say it: nghttp2 takes any GOAWAY of
 * its own for the last one and silently ignores each stream that was on its way, which then hangs. So the frame goes
 * to the socket directly, between two frames of node:http2, which writes only whole ones.
 *
 * False where that is not possible now, since our SETTINGS, which must be the first frame, are not acknowledged or
 * the client has not taken earlier frames: try again later.
 */
export function sendShutdownNotice(session: ServerHttp2Session): boolean {
  if (session.closed || session.destroyed) return true;
  if (session.pendingSettingsAck) return false;
  const { _handle: handle } = session.socket as unknown as { readonly _handle?: SocketHandle };
  if (handle === undefined || handle.fd < 0 || handle.writeQueueSize > 0) return false;
  let count: number;
  try {
    count = writeSync(handle.fd, NOTICE);
  } catch {
    return false;
  }
  // Half a frame would be read as the head of the next one.
  if (count < NOTICE.length) session.destroy();
  return true;
}

import { HEADER_BYTES_MAX } from './http-limits.ts';

// uWebSockets.js reads this once, when its binary is loaded; its own default is 4,096 bytes, which
// a long credential plus tracing headers can pass. This module must be evaluated before it.
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(HEADER_BYTES_MAX);

/* Four hundred random sequences of frames, instead of sixty. */
import './http2-fuzz.host.test.ts';

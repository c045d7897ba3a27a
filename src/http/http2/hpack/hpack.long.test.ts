/* More blocks of any encoder, and of any bytes. */
import './hpack.test.ts';

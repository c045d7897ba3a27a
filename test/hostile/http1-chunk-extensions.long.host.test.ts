/* Twenty bodies of each kind, instead of four. */
import './http1-chunk-extensions.host.test.ts';

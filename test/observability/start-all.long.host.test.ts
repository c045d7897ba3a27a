/* A signal to the whole; in the short run the end of one of them stops the others. */
import './start-all.host.test.ts';

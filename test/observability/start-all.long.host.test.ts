/* A signal to the whole, and wrong settings of one; in the short run the end of one stops the others. */
import './start-all.host.test.ts';

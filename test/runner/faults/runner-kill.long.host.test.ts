/* Three kills. */
import './runner-kill.host.test.ts';

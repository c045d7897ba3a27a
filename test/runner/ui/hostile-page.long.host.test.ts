/* Pages of more names, and of another program on loopback. */
import './hostile-page.host.test.ts';

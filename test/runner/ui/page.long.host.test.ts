/* Logs of 100,000 and of 250,000 lines. */
import './page.host.test.ts';

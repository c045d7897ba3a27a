/* Logs of 100,000 and of 250,000 lines; other events, the keyboard, wrong inputs and a run that resists. */
import './page.host.test.ts';

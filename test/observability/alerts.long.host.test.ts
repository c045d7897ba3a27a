/* The cases of each alert, which take promtool 20 s of a processor. */
import './alerts.host.test.ts';

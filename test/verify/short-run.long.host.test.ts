/* Twelve times as long, with instances that restart and are alone for a while. */
import './short-run.host.test.ts';

/* Secrets of a runner that serves, and one that goes meanwhile. */
import './served-cli.host.test.ts';

/* Four requests of each kind to each route instead of one, and a toll for each kind. */
import './every-route.host.test.ts';

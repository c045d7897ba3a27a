/* The filters of more events. */
import './events-by-hand.host.test.ts';

/* Deliveries of all shapes, up to 25 MB. */
import './large-deliveries.host.test.ts';

/* Two instances, and a stated proxy for each service. */
import './listening-address.host.test.ts';

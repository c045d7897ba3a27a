/* Two instances, and a stated proxy and a set address for each service. */
import './listening-address.host.test.ts';

/* Three instances over a promoted replica, a restored dump, and older copies of the files. */
import './failover.host.test.ts';

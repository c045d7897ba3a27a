/* Each route by each page with each credential. */
import './origins.host.test.ts';

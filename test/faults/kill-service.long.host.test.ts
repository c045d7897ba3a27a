/* Three kills with three times as many callers. */
import './kill-service.host.test.ts';

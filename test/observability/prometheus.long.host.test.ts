/* Every alert on a real Prometheus. */
import './prometheus.host.test.ts';

/* Every way to fail that a plan foresees. */
import './forecast.host.test.ts';

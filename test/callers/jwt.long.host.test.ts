// The test of jwt.host.test.ts in which a service cannot fetch keys for a while.
import './jwt.host.test.ts';

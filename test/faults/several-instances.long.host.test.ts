/* Three processes, and five times as many steps of more callers. */
import './several-instances.host.test.ts';

/* Three processes, and three times as many steps of three times as many callers. */
import './several-instances.host.test.ts';

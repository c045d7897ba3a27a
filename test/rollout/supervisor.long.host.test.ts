/* Three instances that are replaced one by one, instances and supervisors that are killed, and starts that must fail. */
import './supervisor.host.test.ts';

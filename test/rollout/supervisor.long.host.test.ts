/* Instances and supervisors that are killed, and starts that must fail. */
import './supervisor.host.test.ts';

/* Every installation with the real npm. */
import './setup-node.host.test.ts';

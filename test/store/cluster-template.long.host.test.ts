/* Two installations at once, and no template at all. */
import './cluster-template.host.test.ts';

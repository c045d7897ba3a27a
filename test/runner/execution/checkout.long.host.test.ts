/* More depths, refs and wrong inputs; submodules of a copy. */
import './checkout.host.test.ts';

/* Four times as many random scopes as in the short run. */
import './every-method.pg.test.ts';

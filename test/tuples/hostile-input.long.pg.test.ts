/* Three hundred random inputs of each kind, instead of sixty. */
import './hostile-input.pg.test.ts';

/* What a killed runner left of a fork. */
import './hostile-fork.host.test.ts';

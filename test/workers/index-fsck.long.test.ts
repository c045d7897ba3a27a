/* Eight random histories of writes, instead of one. */
import './index-fsck.test.ts';

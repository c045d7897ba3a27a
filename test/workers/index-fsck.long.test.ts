/* Eight random histories of writes, instead of two. */
import './index-fsck.test.ts';

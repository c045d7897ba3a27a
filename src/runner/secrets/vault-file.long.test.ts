/* Each byte of a file changed, not every third. */
import './vault-file.test.ts';

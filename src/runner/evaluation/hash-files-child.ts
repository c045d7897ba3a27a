import { hashFiles } from '@actions/glob';

// A program of its own: the package looks from the working folder, prints what it finds to standard
// output, and hashing must not hold up the process that asks. The answer is the last line of stderr.
const [root = '', patterns = '', follow = ''] = process.argv.slice(2);
process.chdir(root);
const hash = await hashFiles(patterns, root, { followSymbolicLinks: follow === 'follow' });
process.stderr.write(`\nhash=${hash}\n`);

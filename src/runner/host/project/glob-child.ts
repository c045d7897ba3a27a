import { create } from '@actions/glob';

// A program of its own: the package looks from the working folder and prints what it does.
const [root = '', patterns = '', options = '{}'] = process.argv.slice(2);
process.chdir(root);
const globber = await create(patterns, JSON.parse(options) as Parameters<typeof create>[1]);
const files = await globber.glob();
process.send?.({ files, searchPaths: globber.getSearchPaths() });
process.disconnect();

import './node-24.host.test.ts';

/* A run of 1,000 jobs. */
import './needs-graph.test.ts';

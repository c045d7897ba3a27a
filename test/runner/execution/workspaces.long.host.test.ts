/* 50 legs at once; folders of all jobs or of none stay. */
import './workspaces.host.test.ts';

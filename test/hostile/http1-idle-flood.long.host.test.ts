/* 3,000 connections, instead of 1,000. */
import './http1-idle-flood.host.test.ts';

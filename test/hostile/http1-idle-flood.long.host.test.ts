/* 3,000 connections, instead of 300. */
import './http1-idle-flood.host.test.ts';

// Documents that only their viewers read, in NestJS. Decorators are called by hand, since this is plain JavaScript.
import 'reflect-metadata';
import { GatehouseClient } from '@gatehouse/client';
import { gatehouseSession } from '@gatehouse/client/express';
import { gatehouse } from '@gatehouse/client/nestjs';
import {
  Controller,
  Get,
  HttpCode,
  HttpException,
  Module,
  Param,
  Post,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';

const client = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const viewer = (objectId) => ({ namespace: 'resource', objectId, relation: 'viewer' });

const mayView = gatehouse({
  client,
  HttpException,
  user: (request) => request.headers['x-user'],
  needs: (request) => viewer(request.params.id),
});

class Documents {
  read(id) {
    return { document: id };
  }
  share(id, user) {
    return client.write([{ ...viewer(id), subject: user }]).then(() => undefined);
  }
}
const decorate = (method, ...decorators) => {
  const property = Object.getOwnPropertyDescriptor(Documents.prototype, method);
  for (const decorator of decorators) decorator(Documents.prototype, method, property);
};
decorate('read', Get(':id'), UseGuards(mayView));
Param('id')(Documents.prototype, 'read', 0);
decorate('share', Post(':id/viewers/:user'), HttpCode(204));
Param('id')(Documents.prototype, 'share', 0);
Param('user')(Documents.prototype, 'share', 1);
Controller('documents')(Documents);
class App {}
Module({ controllers: [Documents] })(App);

const app = await NestFactory.create(App, new FastifyAdapter(), { logger: false });
app.use(gatehouseSession({ secure: false }));
await app.listen(0, '127.0.0.1');
console.log(app.getHttpServer().address().port);

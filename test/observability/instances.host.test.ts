import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { callInstance } from '../../scripts/instances.ts';

test('a token or secret that is missing is asked for in a sentence', async () => {
  let status = 401;
  const server = createServer((_request, response) =>
    response.writeHead(status).end('{"code":"x"}'),
  );
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await expect(callInstance({ url, headers: {} }, '/x', {})).rejects.toThrow(
      `${url} asks for a service token, and none is given: set GATEWAY_SERVICE_AUTH_TOKENS`,
    );
    const wrong = { url, headers: { authorization: 'Bearer wrong' } };
    await expect(callInstance(wrong, '/x', {})).rejects.toThrow('answered 401');
    status = 403;
    await expect(callInstance(wrong, '/x', {})).rejects.toThrow(
      'asks for the operator secret, and none is given: set GATEWAY_ADMIN_API_SECRET',
    );
  } finally {
    server.close();
  }
});

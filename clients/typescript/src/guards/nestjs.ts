import { bodyOf, type GuardOptions, verdictOn } from './verdict.ts';

type ExecutionContext = {
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown };
};
/** Answers of Express have the one method, those of Fastify the other. */
type Response = {
  setHeader?(name: string, value: string): unknown;
  header?(name: string, value: string): unknown;
};
type HttpException = new (body: unknown, status: number) => Error;

/**
 * A guard of NestJS: `UseGuards(gatehouse({ ..., HttpException }))`. `HttpException` is that of @nestjs/common, given by
 * the caller so that this package needs none of Nest's. The session's middleware is that of `@gatehouse/client/express`.
 */
export function gatehouse<Asked>(
  options: GuardOptions<Asked> & { readonly HttpException: HttpException },
): { canActivate(context: ExecutionContext): Promise<boolean> } {
  return {
    async canActivate(context) {
      const http = context.switchToHttp();
      const verdict = await verdictOn(options, http.getRequest() as Asked);
      if (verdict.status === 200) return true;
      const response = http.getResponse() as Response;
      if (verdict.status === 503) {
        if (response.header === undefined) response.setHeader?.('retry-after', '1');
        else response.header('retry-after', '1');
      }
      throw new options.HttpException(bodyOf(verdict), verdict.status);
    },
  };
}

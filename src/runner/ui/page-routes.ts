import { etagOf, jsonAnswer, type Answer } from '../api/answer.ts';
import { parameterOf, type ApiCall } from '../api/call.ts';
import { errorAnswer } from '../api/error-answer.ts';
import type { ApiRoute } from '../api/router.ts';
import { pageAssets } from './assets.ts';
import { renderDocument, renderProblem } from './document.ts';
import { createPageViews, type PagePorts } from './page-views.ts';
import type { PageView } from './shared/views.ts';

export type PageOptions = PagePorts & {
  /** The API wants a token: pages then hold no data, the browser fetches it with the token. */
  readonly needsToken: boolean;
  /** Absolute path of the project. */
  readonly workspace: string;
};

/** Nothing but what this server itself serves, and nothing inline (Content Security Policy Level 3). */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
const HTML_HEADERS = [
  'content-security-policy',
  POLICY,
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
  'x-frame-options',
  'DENY',
  'cache-control',
  'no-store',
];
const HTML_TYPE = 'text/html; charset=utf-8';

/**
 * The page for people: `/`, `/workflows/:file`, `/runs/:id` as HTML, the same as JSON below /api/page,
 * where the token guards it, and the files of the page below /assets.
 */
export function pageRoutes(options: PageOptions): readonly ApiRoute[] {
  const views = createPageViews(options);
  const page = (
    path: string,
    view: (call: ApiCall) => PageView | Promise<PageView>,
    tails: (view: PageView, call: ApiCall) => Promise<ReadonlyMap<number, readonly string[]>>,
  ): readonly ApiRoute[] => [
    {
      method: 'GET',
      pattern: path,
      handle: async (call) => {
        const place = { path: call.path, workspace: options.workspace };
        if (options.needsToken) return document(200, renderDocument(undefined, place, {}));
        try {
          const found = await view(call);
          const jobId = call.query.get('job') ?? undefined;
          const rendering = { jobId, now: Date.now(), tails: await tails(found, call) };
          return document(200, renderDocument(found, place, rendering));
        } catch (error) {
          const { answer, code } = errorAnswer(error, call.requestId);
          if (code === 'internal' || !('status' in answer)) throw error;
          return document(answer.status, renderProblem(error));
        }
      },
    },
    {
      method: 'GET',
      pattern: path === '/' ? '/api/page/home' : `/api/page${path}`,
      handle: async (call) => jsonAnswer(200, await view(call), ['cache-control', 'no-store']),
    },
  ];
  const none = (): Promise<ReadonlyMap<number, readonly string[]>> => Promise.resolve(new Map());
  return [
    ...page('/', () => views.home(), none),
    ...page('/workflows/:name', (call) => views.workflow(parameterOf(call, 'name')), none),
    ...page(
      '/runs/:id',
      (call) => views.run(parameterOf(call, 'id')),
      (view, call) => (view.kind === 'run' ? views.tails(view, call.query.get('job')) : none()),
    ),
    ...pageAssets().map(assetRoute),
  ];
}

function document(status: number, body: string): Answer {
  return { kind: 'whole', status, contentType: HTML_TYPE, body, headers: HTML_HEADERS };
}

function assetRoute({ path, contentType, body }: ReturnType<typeof pageAssets>[number]): ApiRoute {
  const headers = ['cache-control', 'no-cache', 'cross-origin-resource-policy', 'same-origin'];
  let etag: string | undefined;
  return {
    method: 'GET',
    pattern: path,
    handle: () => {
      const text = body();
      etag ??= etagOf(text);
      return { kind: 'whole', status: 200, contentType, body: text, headers, etag };
    },
  };
}

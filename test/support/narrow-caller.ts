import { type DescMessage, fromBinary, fromJsonString } from '@bufbuild/protobuf';

/** The token of a caller that reaches the tenant '' of the default project, and nothing else. */
export const NARROW_TOKEN = 'narrow-token';

const scopes = [{ projects: ['default'], tenants: [''], services: '*', methods: '*' }];
/** The setting that has it. */
export const NARROW_CALLERS = {
  GATEWAY_CALLERS: JSON.stringify({
    callers: [{ name: 'narrow', tokens: [NARROW_TOKEN], scopes }],
  }),
};

type Named = { readonly projectId?: string; readonly tenantId?: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Whether a request, as the library decodes it, is of another tenant; false where the library refuses it. */
export function isOutOfReach(desc: DescMessage, isJson: boolean, bytes: Uint8Array): boolean {
  try {
    const request = isJson
      ? fromJsonString(desc, utf8.decode(bytes))
      : fromBinary(desc, new Uint8Array(bytes));
    // A question has them within.
    const { scope, ...own } = request as unknown as Named & { readonly scope?: Named };
    const { projectId = '', tenantId = '' } = 'projectId' in own ? own : (scope ?? {});
    return tenantId !== '' || (projectId !== '' && projectId !== 'default');
  } catch {
    return false;
  }
}

export const ZIP_TYPE = 'application/zip';

/** Name of an artifact's file where it is saved: people want the ending of a zip. */
export function fileNameOf(artifact: { readonly name: string; readonly mimeType: string }): string {
  const { name, mimeType } = artifact;
  return mimeType === ZIP_TYPE && !/\.zip$/i.test(name) ? `${name}.zip` : name;
}

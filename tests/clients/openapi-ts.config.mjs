export default { input: "openapi.json", output: { path: "hey", importFileExtension: ".js" } };
